"""What the whole suite shares: pytest's own harness for plugins, and property tests that no clock hurries."""

from hypothesis import HealthCheck, settings

pytest_plugins = ["pytester"]

# Hypothesis' defaults, 200 ms an example and a second to draw some, fail a test for being run on a busy machine.
settings.register_profile("unhurried", settings.default, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")
