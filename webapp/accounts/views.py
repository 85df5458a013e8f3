"""Signing in and out."""

from django.contrib.auth.views import LoginView, LogoutView


class SignIn(LoginView):
    """The sign-in form; a signed-in person goes straight on."""

    template_name = "accounts/sign_in.html"
    redirect_authenticated_user = True


class SignOut(LogoutView):
    """Ends the session; POST only, so that no link or image can sign anyone out."""
