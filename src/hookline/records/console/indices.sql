-- Made after a bulk load. The first answers every filter without touching the table, also where nothing matches.
CREATE INDEX IF NOT EXISTS by_time ON events (time, event, tool, verdict, failed, hookset, run);
CREATE INDEX IF NOT EXISTS by_run ON events (run, time);
