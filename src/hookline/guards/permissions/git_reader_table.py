"""The parts of git that read, and the options with which they do nothing else.

Left out on purpose: `--output` (writes), `--open-files-in-pager`, `--ext-diff`, `--textconv`, `--filters` and
`--show-signature` (run programs that some configuration names), `--no-index` and files with further names in them.
"""

from __future__ import annotations

from hookline.guards.permissions.options import ReadOnlyOptions, row

BEFORE = frozenset({"--no-pager", "-P", "--no-optional-locks", "--literal-pathspecs", "--icase-pathspecs"})
"""Options of git itself that change nothing about what it runs; `-C`, `-c` and `--git-dir` do."""

_DIFF = (
    "-puszabwWRD -U: -B? -M? -C? -S: -G: -l: --patch --no-patch --unified: --raw --patch-with-raw --patch-with-stat "
    "--minimal --patience --histogram --anchored: --diff-algorithm: --stat? --compact-summary --numstat --shortstat "
    "--dirstat? --cumulative --summary --name-only --name-status --submodule? --color? --no-color --color-moved? "
    "--no-color-moved --color-moved-ws: --word-diff? --word-diff-regex: --color-words? --no-renames --renames "
    "--no-rename-empty --check --ws-error-highlight: --full-index --binary --abbrev? --break-rewrites? "
    "--find-renames? --find-copies? --find-copies-harder --irreversible-delete --diff-filter: --find-object: "
    "--pickaxe-all --pickaxe-regex --skip-to: --rotate-to: --relative? --no-relative --text --ignore-cr-at-eol "
    "--ignore-space-at-eol --ignore-space-change --ignore-all-space --ignore-blank-lines --ignore-matching-lines: "
    "--inter-hunk-context: --function-context --exit-code --quiet --no-ext-diff --no-textconv --ignore-submodules? "
    "--src-prefix: --dst-prefix: --no-prefix --default-prefix --line-prefix: --ita-invisible-in-index "
)
_WALK = (
    "-0123456789 -n: --max-count: --skip: --since: --after: --until: --before: --since-as-filter: --author: "
    "--committer: --grep: --grep-reflog: --all-match --invert-grep --regexp-ignore-case --basic-regexp "
    "--extended-regexp --fixed-strings --perl-regexp -iEFP --merges --no-merges --min-parents: --max-parents: "
    "--first-parent --not --all --branches? --tags? --remotes? --glob: --exclude: --reflog --cherry-mark --cherry-pick "
    "--cherry --left-only --right-only --left-right --boundary --simplify-by-decoration --full-history --dense "
    "--sparse --simplify-merges --ancestry-path? --date-order --author-date-order --topo-order --reverse --no-walk? "
    "--parents --children --abbrev-commit --no-abbrev-commit --oneline --date: --relative-date --encoding: "
    "--ignore-missing "
)
_LOG = (
    _DIFF
    + _WALK
    + "-cmtg -L: --graph --no-graph --follow --no-decorate --decorate? --decorate-refs: --decorate-refs-exclude: "
    "--source --mailmap --no-mailmap --use-mailmap --full-diff --log-size --pretty? --format: --walk-reflogs --cc "
    "--diff-merges: --no-diff-merges --root --notes? --no-notes --expand-tabs? --no-expand-tabs --show-pulls "
    "--no-commit-id "
)

GIT: dict[str, ReadOnlyOptions] = {
    "status": row(
        "-sbvz -u? --short --branch --porcelain? --long --verbose --untracked-files? --ignored? --column? --no-column "
        "--ahead-behind --no-ahead-behind --renames --no-renames --find-renames? --show-stash --ignore-submodules?"
    ),
    "log": row(_LOG),
    "show": row(_LOG),
    "diff": row(_DIFF + "-0123 -i --cached --staged --merge-base --cc -c --base --ours --theirs"),
    "diff-tree": row(_DIFF + "-rtmcv --root --no-commit-id --cc --pretty? --format: --stdin --always --merge-base"),
    "blame": row(
        "-efnswptlcb -L: -C? -M? --date: --since: --porcelain --line-porcelain --incremental --root --show-stats "
        "--show-name --show-number --show-email --score-debug --abbrev: --ignore-rev: --color-lines --color-by-age "
        "--first-parent"
    ),
    "rev-parse": row(
        "-q --show-toplevel --abbrev-ref? --short? --verify --quiet --git-dir --is-inside-work-tree "
        "--is-inside-git-dir --is-bare-repository --is-shallow-repository --show-prefix --show-cdup "
        "--symbolic-full-name --symbolic --all --branches? --tags? --remotes? --revs-only --no-revs --flags --no-flags "
        "--absolute-git-dir --git-common-dir --show-superproject-working-tree --git-path: --not --default: "
        "--show-object-format? --path-format: --local-env-vars"
    ),
    "ls-files": row(
        "-cdmoisuktvfz -x: --cached --deleted --modified --others --ignored --stage --unmerged --killed "
        "--exclude-standard --exclude: --error-unmatch --full-name --abbrev? --directory --no-empty-directory --eol "
        "--recurse-submodules --with-tree: --format: --deduplicate --debug"
    ),
    "ls-tree": row("-drtlz --long --name-only --name-status --full-name --full-tree --abbrev? --object-only --format:"),
    "describe": row(
        "--tags --all --contains --always --dirty? --broken? --long --abbrev? --match: --exclude: --candidates: "
        "--exact-match --first-parent --debug"
    ),
    "shortlog": row(_WALK + "-nsec -w? --summary --numbered --email --committer --group: --format:"),
    "grep": row(
        "-0123456789 -niwvEFGPIahHolLcqrWpz -e: -f@ -A: -B: -C: -m: --cached --untracked --exclude-standard "
        "--recurse-submodules --line-number --column --ignore-case --word-regexp --invert-match --extended-regexp "
        "--fixed-strings --basic-regexp --perl-regexp --files-with-matches --files-without-match --name-only --null "
        "--only-matching --count --all-match --and --or --not --color? --no-color --break --heading --show-function "
        "--function-context --context: --after-context: --before-context: --max-depth: --max-count: --threads: "
        "--full-name --text --quiet --no-textconv",
        "pattern",
        no_pattern="-e -f",
    ),
    "cat-file": row("-tsep --batch? --batch-check? --batch-all-objects --buffer --unordered --follow-symlinks"),
    "rev-list": row(
        _WALK + "--count --objects --objects-edge --disk-usage? --timestamp --pretty? --format: --no-commit-header "
        "--header --no-object-names --graph --bisect --missing:"
    ),
    "merge-base": row("-a --all --octopus --is-ancestor --fork-point --independent"),
    "name-rev": row("--tags --refs: --exclude: --all --name-only --no-undefined --undefined --always"),
    "count-objects": row("-vH --verbose --human-readable"),
}
"""Subcommand → the options with which it only reads."""


def asks_gpg(options: tuple[tuple[str, str], ...]) -> bool:
    """Whether a format shows signatures: `%G?` runs the program that the configuration names for it."""
    return any(name in ("--format", "--pretty") and "%G" in value for name, value in options)
