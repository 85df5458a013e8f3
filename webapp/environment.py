"""Settings from the environment, with one clear line when a value is wrong."""

import json
import os
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

CHECKOUT = Path(__file__).resolve().parent.parent


def home() -> Path:
    """The state directory: ``WEIR_HOME``, else ``.weir`` in the checkout."""
    return Path(os.environ.get("WEIR_HOME") or CHECKOUT / ".weir").resolve()


def integer(name: str, default: int) -> int:
    """An integer setting."""
    text = os.environ.get(name, "")
    try:
        return int(text) if text else default
    except ValueError:
        raise ImproperlyConfigured(f"{name} is {text!r}, expected a whole number") from None


def boolean(name: str, default: bool) -> bool:
    """A yes/no setting: 1, true, yes, on or 0, false, no, off."""
    text = os.environ.get(name, "").lower()
    if not text:
        return default
    if text in ("1", "true", "yes", "on"):
        return True
    if text in ("0", "false", "no", "off"):
        return False
    raise ImproperlyConfigured(f"{name} is {text!r}, expected 1 or 0")


def service_url(name: str, fallback: str) -> str:
    """Address of a server: the variable, else the embedded one that ``make run`` has up, else ``fallback``.

    Reading ``services.json`` lets ``manage.py`` in a second terminal reach a running Weir.
    """
    if os.environ.get(name):
        return os.environ[name]
    running = home() / "services.json"
    try:
        return str(json.loads(running.read_text())[name])
    except (FileNotFoundError, KeyError):
        return fallback
    except (PermissionError, NotADirectoryError, json.JSONDecodeError) as error:
        raise ImproperlyConfigured(f"cannot read {running}: {error}") from error


def secret_key() -> str:
    """``WEIR_SECRET_KEY``, else the file ``secret-key`` in the state directory, made on first use."""
    if os.environ.get("WEIR_SECRET_KEY"):
        return os.environ["WEIR_SECRET_KEY"]
    path = home() / "secret-key"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(os.urandom(40).hex())
    except FileExistsError:
        pass  # made by an earlier start or another process
    except OSError as error:
        raise ImproperlyConfigured(f"cannot write {path}: {error.strerror}; set WEIR_HOME") from error
    return path.read_text()
