"""Django settings, all from the environment (see ``webapp.environment`` and the operations guide)."""

import os

import dj_database_url
from csp.constants import NONE, SELF

from webapp.environment import CHECKOUT, boolean, home, integer, secret_key, service_url

BASE_DIR = CHECKOUT
WEIR_HOME = home()
DEBUG = boolean("WEIR_DEBUG", False)
SECRET_KEY = secret_key()
ALLOWED_HOSTS = os.environ.get("WEIR_HOSTS", "localhost,127.0.0.1,[::1]").split(",")
CSRF_TRUSTED_ORIGINS = [origin for origin in os.environ.get("WEIR_ORIGINS", "").split(",") if origin]

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "csp",
    "rest_framework",
    "drf_spectacular",
    "webapp.api",
    "webapp.accounts",
    "webapp.jobs",
    "webapp.telemetry",
    "webapp.analysis",
    "webapp.bursts",
    "webapp.audit",
    "webapp.reconfigurations",
    "webapp.notifications",
    "webapp.ops",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "csp.middleware.CSPMiddleware",
]

ROOT_URLCONF = "webapp.urls"
WSGI_APPLICATION = "webapp.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

DATABASE_URL = service_url("DATABASE_URL", "postgresql://127.0.0.1:5432/weir")
DATABASES = {"default": dj_database_url.parse(DATABASE_URL, conn_max_age=60, conn_health_checks=True)}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
REDIS_URL = service_url("REDIS_URL", "redis://127.0.0.1:6379/0")

AUTH_USER_MODEL = "accounts.User"
LOGIN_URL = "sign-in"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "sign-in"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
SESSION_COOKIE_AGE = 12 * 3600
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = boolean("WEIR_HTTPS", False)
# Dash sends the CSRF cookie back as a header, so scripts must be able to read it.
CSRF_COOKIE_HTTPONLY = False

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True
STATIC_URL = "static/"
STATIC_ROOT = WEIR_HOME / "static"
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = DEBUG

# Plotly and Mantine set style attributes, hence unsafe-inline for styles only; the Dash view adds the
# hashes of Dash's own inline scripts.
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "style-src": [SELF, "'unsafe-inline'"],
        "img-src": [SELF, "data:", "blob:"],
        "font-src": [SELF, "data:"],
        "frame-ancestors": [NONE],
        "base-uri": [SELF],
        "form-action": [SELF],
        "object-src": [NONE],
    }
}

REST_FRAMEWORK = {
    "DEFAULT_RENDERER_CLASSES": ("rest_framework.renderers.JSONRenderer",),
    "DEFAULT_PARSER_CLASSES": ("rest_framework.parsers.JSONParser",),
    "EXCEPTION_HANDLER": "webapp.api.problems.from_exception",
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Weir",
    "VERSION": "1",
    "DESCRIPTION": "What limits a streaming job. Every error is a problem (RFC 9457); pages are by key.",
    "COMPONENT_SPLIT_REQUEST": True,
    "SERVE_INCLUDE_SCHEMA": False,
    "ENUM_NAME_OVERRIDES": {
        "EngineEnum": "webapp.jobs.models.Engine",
        "ChangeEngineEnum": "webapp.reconfigurations.models.EngineKind",
        "AlertKindEnum": "webapp.notifications.alert_models.RuleKind",
        "ChannelKindEnum": "webapp.notifications.models.ChannelKind",
        "MessageStateEnum": "webapp.notifications.models.DeliveryState",
        "ProposalKindEnum": "webapp.reconfigurations.models.Kind",
        "ProposalStateEnum": "webapp.reconfigurations.lifecycle.State",
    },
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "webapp.api.schema.add_problems",
    ],
}
# What a token may do in a second, and at once after a rest.
WEIR_RATE_PER_S = integer("WEIR_RATE_PER_S", 200)
WEIR_RATE_BURST = integer("WEIR_RATE_BURST", 1_000)
# Of one delivery, as it comes and once it is unpacked.
WEIR_MAX_BODY_BYTES = integer("WEIR_MAX_BODY_BYTES", 16 << 20)
WEIR_MAX_UNPACKED_BYTES = integer("WEIR_MAX_UNPACKED_BYTES", 64 << 20)
WEIR_MAX_SERIES_PER_JOB = integer("WEIR_MAX_SERIES_PER_JOB", 20_000)
WEIR_MAX_NAMES_PER_JOB = integer("WEIR_MAX_NAMES_PER_JOB", 20_000)
WEIR_MAX_JOBS = integer("WEIR_MAX_JOBS", 10_000)
# How long each class of data is kept (webapp.ops.retention).
WEIR_KEEP_RAW_DAYS = integer("WEIR_KEEP_RAW_DAYS", 14)
WEIR_KEEP_ROLLUPS_DAYS = integer("WEIR_KEEP_ROLLUPS_DAYS", 400)
WEIR_KEEP_RESULTS_DAYS = integer("WEIR_KEEP_RESULTS_DAYS", 90)

CELERY_BROKER_URL = REDIS_URL
WEIR_SPARK_WORKER_TIMEOUT_S = integer("WEIR_SPARK_WORKER_TIMEOUT_S", 30)

# Uploaded files: bytes as they are sent, and what one may hold once it is read.
WEIR_UPLOAD_MAX_BYTES = integer("WEIR_UPLOAD_MAX_BYTES", 2 << 30)
WEIR_UPLOAD_MAX_UNPACKED_BYTES = integer("WEIR_UPLOAD_MAX_UNPACKED_BYTES", 4 << 30)
WEIR_UPLOAD_MAX_RECORDS = integer("WEIR_UPLOAD_MAX_RECORDS", 10_000_000)

# Networks inside that messages to channels may go to, such as 10.1.0.0/16, separated by commas.
WEIR_ALLOWED_INSIDE = os.environ.get("WEIR_ALLOWED_INSIDE", "")
# Mails. Without a server they lie in the outbox, a page.
WEIR_SMTP_URL = os.environ.get("WEIR_SMTP_URL", "")
WEIR_MAIL_FROM = os.environ.get("WEIR_MAIL_FROM", "Weir <weir@localhost>")
WEIR_PUBLIC_URL = os.environ.get(
    "WEIR_PUBLIC_URL", f"http://127.0.0.1:{os.environ.get('WEIR_PORT') or 8000}"
).rstrip("/")

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "{asctime} {levelname} {name} {message}", "style": "{"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": os.environ.get("WEIR_LOG_LEVEL", "INFO")},
}
