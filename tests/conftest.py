"""What the whole suite shares: pytest's own harness for plugins."""

pytest_plugins = ["pytester"]
