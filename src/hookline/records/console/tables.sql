CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE segments (
    id INTEGER PRIMARY KEY, log TEXT, path TEXT, identity TEXT UNIQUE, done INTEGER, tail BLOB, lines INTEGER,
    unreadable INTEGER);
CREATE TABLE names (id INTEGER PRIMARY KEY, kind INTEGER, name TEXT, UNIQUE (kind, name));
CREATE TABLE hooksets (hookset INTEGER, hook INTEGER, PRIMARY KEY (hookset, hook)) WITHOUT ROWID;
CREATE TABLE sessions (
    id INTEGER PRIMARY KEY, name TEXT UNIQUE, first INTEGER, last INTEGER, events INTEGER DEFAULT 0,
    denied INTEGER DEFAULT 0, asked INTEGER DEFAULT 0, failed INTEGER DEFAULT 0, tools INTEGER DEFAULT 0, title TEXT,
    cwd TEXT, user TEXT);
CREATE TABLE events (
    id INTEGER PRIMARY KEY, segment INTEGER, offset INTEGER, length INTEGER, seq INTEGER, time INTEGER, run INTEGER,
    event INTEGER, tool INTEGER, verdict INTEGER, failed INTEGER, hookset INTEGER, agent INTEGER, agent_type INTEGER,
    ms REAL, duration REAL, by INTEGER, call TEXT, about TEXT, reason TEXT);
CREATE TABLE cube (
    bucket INTEGER, event INTEGER, tool INTEGER, verdict INTEGER, failed INTEGER, hookset INTEGER, n INTEGER,
    PRIMARY KEY (bucket, event, tool, verdict, failed, hookset)) WITHOUT ROWID;
CREATE TABLE hook_runs (
    hook INTEGER, bucket INTEGER, slot INTEGER, denied INTEGER, failed INTEGER, n INTEGER,
    PRIMARY KEY (hook, bucket, slot, denied, failed)) WITHOUT ROWID;
CREATE TABLE slowest (hook INTEGER, ms REAL, event INTEGER, PRIMARY KEY (hook, ms, event)) WITHOUT ROWID;
CREATE VIEW event_rows AS SELECT
    e.id, e.time, coalesce(v.name, '') AS event, e.verdict, coalesce(t.name, '') AS tool,
    coalesce(s.name, '') AS session, coalesce(s.user, '') AS user, coalesce(e.about, '') AS about,
    coalesce(b.name, '') AS by, coalesce(e.reason, '') AS reason, coalesce(e.ms, 0.0) AS ms, e.duration, e.failed,
    coalesce(a.name, '') AS agent, coalesce(k.name, '') AS agent_type, coalesce(e.call, '') AS call,
    (SELECT count(*) FROM hooksets h WHERE h.hookset = e.hookset) AS hooks
FROM events e LEFT JOIN names v ON v.id = e.event LEFT JOIN names t ON t.id = e.tool
    LEFT JOIN names b ON b.id = e.by LEFT JOIN names a ON a.id = e.agent LEFT JOIN names k ON k.id = e.agent_type
    LEFT JOIN sessions s ON s.id = e.run;
