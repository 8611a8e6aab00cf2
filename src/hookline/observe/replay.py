"""See `hookline.replay.compare`."""

from hookline.replay.compare import Flip, Report, judge, replay

__all__ = ["Flip", "Report", "judge", "replay"]
