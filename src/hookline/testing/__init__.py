"""For your own tests: event factories, fakes and a pytest plugin."""
