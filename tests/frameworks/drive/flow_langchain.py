"""The flow guard inside an agent of this framework."""

from functools import partial

from tests.frameworks.drive import langchain_sync
from tests.frameworks.drive.flow_case import played

CASES = {"flow": partial(played, langchain_sync.run)}
