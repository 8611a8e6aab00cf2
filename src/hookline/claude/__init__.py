"""The Claude CLI's control protocol, both ends."""
