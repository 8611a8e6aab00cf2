"""The flow guard inside an agent of this framework."""

from functools import partial

from tests.frameworks.drive import openai_agents_run
from tests.frameworks.drive.flow_case import played

CASES = {"flow": partial(played, openai_agents_run.run)}
