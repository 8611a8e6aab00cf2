"""The programs that read, and the options with which they do nothing else: one row each, in the notation of `table`.

A program that is not here, or an option that its row does not list, may do anything. Left out on purpose: options that
write (`sort -o`, `tree -o`), run programs (`sort --compress-program`, `rg --pre`, `fd -x`, `diff --paginate`), change
something (`date --set`, `file -p`), or read files whose names stand in another file (`wc --files0-from`); of git:
`--output` (writes), `--open-files-in-pager`, `--ext-diff`, `--textconv`, `--filters` and `--show-signature` (run
programs that some configuration names), `--no-index` and files with further names in them.
"""

from __future__ import annotations

_GREP = (
    "-0123456789EFGPivwxycLloqsbHhnTZaUzrRI -e: -m: -A: -B: -C: -d: -D: -f@ --extended-regexp --fixed-strings "
    "--basic-regexp --perl-regexp --regexp: --file@ --ignore-case --no-ignore-case --invert-match --word-regexp "
    "--line-regexp --count --color? --colour? --files-without-match --files-with-matches --max-count: --only-matching "
    "--quiet --silent --no-messages --byte-offset --with-filename --no-filename --label: --line-number --initial-tab "
    "--null --after-context: --before-context: --context: --group-separator: --no-group-separator --text "
    "--binary-files: --devices: --directories: --exclude: --exclude-from@ --exclude-dir: --include: --recursive "
    "--dereference-recursive --line-buffered --null-data"
)
_SUMS = "-bctwz --binary --check --tag --text --zero --ignore-missing --quiet --status --strict --warn"

READERS: dict[str, str] = {
    "b2sum sha224sum sha384sum sha512sum": f"opens reads {_SUMS}",
    "base32": "opens reads most=1 -di -w: --decode --ignore-garbage --wrap:",
    "base64": "opens writes=output reads most=1 -dDi -w: --decode --ignore-garbage --wrap:",
    "cat": "opens text plain aside reads -AbeEnstTuv --show-all --number-nonblank --show-ends --number "
    "--squeeze-blank --show-tabs --show-nonprinting",
    "cksum": "opens reads",
    "cmp": "opens text plain reads -bls -i: -n: --print-bytes --ignore-initial: --verbose --bytes: --quiet --silent",
    "column": "opens text other-o plain reads -tnxeJLdr -s: -o: -c: -N: -R: -H: -T: -W: -O: --table --separator: "
    "--output-separator: --output-width: --table-columns: --table-right: --table-hide: --json --fillrows "
    "--keep-empty-lines",
    "comm": "opens text plain reads -123z --check-order --nocheck-order --output-delimiter: --total --zero-terminated",
    "cut": "opens text plain aside reads -nsz -b: -c: -d: -f: --bytes: --characters: --delimiter: --fields: "
    "--complement --only-delimited --output-delimiter: --zero-terminated",
    "date": "text plain aside reads texts -uR -I? -d: -r@ --date: --utc --universal --rfc-email --rfc-3339: "
    "--iso-8601? --reference@",
    "df": "text other-o plain reads -ahHiklPTv -B: -t: -x: --all --block-size: --human-readable --si --inodes --local "
    "--no-sync --output? --portability --print-type --type: --exclude-type: --total",
    "diff": "opens deep=-r,--recursive text plain reads most=2 -0123456789abBcdeEfHiNnpPqrstTuwy -C: -U: -W: -x: -F: "
    "-I: -S: -L: -X@ --text --ignore-space-change --ignore-blank-lines --context? --minimal --ed "
    "--ignore-tab-expansion --speed-large-files --ignore-case --new-file --rcs --show-c-function "
    "--unidirectional-new-file --brief --recursive --report-identical-files --expand-tabs --initial-tab --unified? "
    "--ignore-all-space --ignore-trailing-space --side-by-side --width: --left-column --suppress-common-lines "
    "--strip-trailing-cr --exclude: --exclude-from@ --ignore-matching-lines: --show-function-line: --label: --color? "
    "--no-dereference --normal --tabsize: --horizon-lines: --ignore-file-name-case",
    "du": "text other-o plain reads -abcDhHklLmPsSx0 -d: -t: -B: --all --apparent-size --bytes --total "
    "--dereference-args --max-depth: --human-readable --inodes --si --count-links --dereference --no-dereference "
    "--separate-dirs --summarize --threshold: --time? --time-style: --one-file-system --block-size: --null "
    "--exclude:",
    "egrep fgrep": f"opens script-first deep=-r,-R,--recursive,--dereference-recursive searches text other-o plain "
    f"reads pattern no-pattern=--file,--regexp,-e,-f {_GREP}",
    "expand": "opens plain reads -i -t: --initial --tabs:",
    "fd": "opens look=find reads pattern -HIusigFaLp0q1 -d: -t: -e: -E: -S: -c: --hidden --no-ignore --no-ignore-vcs "
    "--unrestricted --case-sensitive --ignore-case --glob --regex --fixed-strings --absolute-path --follow "
    "--full-path --print0 --max-depth: --min-depth: --exact-depth: --type: --extension: --exclude: --size: "
    "--changed-within: --changed-before: --color: --max-results: --quiet --prune",
    "file": "opens text reads -biIkLhNnrsv0 -F: -e: --brief --mime --mime-type --mime-encoding --extension "
    "--keep-going --dereference --no-dereference --no-pad --no-buffer --raw --special-files --print0 --separator: "
    "--version",
    "fmt": "opens plain reads -0123456789cstu -g: -p: -w: --crown-margin --split-only --tagged-paragraph "
    "--uniform-spacing --goal: --prefix: --width:",
    "fold": "opens plain reads -0123456789bs -w: --bytes --spaces --width:",
    "grep": "opens script-first deep=-r,-R,--recursive,--dereference-recursive searches text other-o plain aside "
    f"reads pattern no-pattern=--file,--regexp,-e,-f {_GREP}",
    "head": "opens text plain aside reads -0123456789qvz -c: -n: --bytes: --lines: --quiet --silent --verbose "
    "--zero-terminated",
    "hexdump": "opens text reads -bcCdovx -n: -s: -L? --one-byte-octal --canonical --length: --skip: --no-squeezing",
    "join": "opens other-o plain reads most=2 -iz -a: -e: -j: -o: -t: -v: -1: -2: --check-order --nocheck-order "
    "--header --ignore-case --zero-terminated",
    "jq": "opens script-first text other-o plain program-file=-f,--from-file aside reads pattern -rcnsSeajRMC "
    "--raw-output --raw-output0 --compact-output --null-input --slurp --sort-keys --exit-status --ascii-output "
    "--join-output --raw-input --monochrome-output --color-output --tab --indent: --arg:: --argjson:: --stream --seq",
    "ls": "opens text other-o plain reads -aAbBcCdDfFgGhHiklLmnNopqQrRsStuUvxXZ1 -I: -T: -w: --all --almost-all "
    "--author --escape --block-size: --ignore-backups --color? --directory --dired --classify? --file-type --format: "
    "--full-time --group-directories-first --no-group --human-readable --si --dereference-command-line --hide: "
    "--hyperlink? --indicator-style: --inode --ignore: --kibibytes --dereference --numeric-uid-gid --literal "
    "--hide-control-chars --show-control-chars --quote-name --quoting-style: --reverse --recursive --size --sort: "
    "--time: --time-style: --tabsize: --width: --context --zero",
    "md5sum sha1sum sha256sum": f"opens plain reads {_SUMS}",
    "nl": "opens plain reads -p -b: -d: -f: -h: -i: -l: -n: -s: -v: -w: --body-numbering: --number-format: "
    "--number-width: --number-separator: --starting-line-number: --line-increment:",
    "od": "opens text other-o plain reads -abcdfilosxv -A: -j: -N: -S: -t: -w? --address-radix: --skip-bytes: "
    "--read-bytes: --strings? --format: --output-duplicates --width? --endian:",
    "paste": "opens plain reads -sz -d: --delimiters: --serial --zero-terminated",
    "pr": "opens plain reads -0123456789acdfFJmrtTv -h: -l: -w: -W: -D: -N: -o: -n? -s? -S? --length: --omit-header "
    "--width: --header: --double-space --merge --across --columns:",
    "readlink": "opens text plain reads -femnqsvz --canonicalize --canonicalize-existing --canonicalize-missing "
    "--no-newline --quiet --silent --verbose --zero",
    "realpath": "opens text plain reads -eEmLPqsz --canonicalize-existing --canonicalize-missing --logical --physical "
    "--quiet --relative-to@ --relative-base@ --strip --no-symlinks --zero",
    "rev": "opens plain reads -0 --zero",
    "rg": "opens script-first deep searches text other-o look=tar reads pattern "
    "no-pattern=--file,--files,--regexp,--type-list,-e,-f -FiSsvwxclonNHIhuUPLabpq0. -e: -g: -t: -T: -A: -B: -C: -m: "
    "-d: -j: -M: -r: -E: -f@ --fixed-strings --ignore-case --smart-case --case-sensitive --invert-match "
    "--word-regexp --line-regexp --count --count-matches --files-with-matches --files-without-match --only-matching "
    "--line-number --no-line-number --column --with-filename --no-filename --hidden --no-hidden --no-ignore "
    "--no-ignore-vcs --unrestricted --multiline --multiline-dotall --pcre2 --follow --text --byte-offset --pretty "
    "--quiet --null --regexp: --file@ --glob: --iglob: --type: --type-not: --after-context: --before-context: "
    "--context: --max-count: --max-depth: --threads: --max-columns: --replace: --encoding: --files --type-list "
    "--sort: --sortr: --stats --trim --vimgrep --json --heading --no-heading --color: --colors: --passthru "
    "--no-messages --no-config --one-file-system --max-filesize: --context-separator: --debug",
    "shuf": "opens plain writes=output reads -erz -n: -i: --echo --head-count: --input-range: --repeat "
    "--zero-terminated",
    "sort": "opens text plain aside writes=output look=tar reads -bdfgiMhnRrVcCusmz -k: -t: -S: "
    "--ignore-leading-blanks --dictionary-order --ignore-case --general-numeric-sort --ignore-nonprinting "
    "--month-sort --human-numeric-sort --numeric-sort --random-sort --reverse --sort: --version-sort --batch-size: "
    "--check? --debug --key: --merge --buffer-size: --stable --field-separator: --parallel: --unique "
    "--zero-terminated --compress-program!",
    "stat": "opens text other-o plain reads -Lft -c: --dereference --file-system --format: --printf: --terse --cached:",
    "strings": "opens text reads -0123456789adfow -n: -t: -e: -s: --all --data --print-file-name --bytes: --radix: "
    "--encoding: --include-all-whitespace --output-separator:",
    "tac": "opens text plain reads -br -s: --before --regex --separator:",
    "tail": "opens text plain aside reads -0123456789fFqvz -c: -n: -s: --bytes: --lines: --follow? "
    "--max-unchanged-stats: --pid: --quiet --silent --retry --sleep-interval: --verbose --zero-terminated",
    "tr": "opens text plain aside reads texts -cCdst --complement --delete --squeeze-repeats --truncate-set1",
    "tree": "opens text writes=output reads -adfilxpsughDFqNQrtvUcCnASJX -L: -P: -I: --du --si --dirsfirst "
    "--filesfirst --noreport --prune --gitignore --matchdirs --ignore-case --inodes --device --sort: --filelimit: "
    "--charset: --timefmt: --metafirst",
    "tsort": "opens plain reads most=1",
    "unexpand": "opens plain reads -a -t: --all --first-only --tabs:",
    "uniq": "opens text plain aside writes=second reads most=1 -cdDuiz -f: -s: -w: --count --repeated --all-repeated? "
    "--skip-fields: --group? --ignore-case --skip-chars: --unique --zero-terminated --check-chars:",
    "wc": "opens text plain aside reads -cmlLw --bytes --chars --lines --max-line-length --words --total:",
    "xxd": "opens writes=second reads most=1 -abeEipu -c: -g: -l: -s: -o: -n:",
}  # fmt: skip

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
GIT: dict[str, str] = {
    "git:log git:show": f"reads {_LOG}",
    "git:diff": f"reads {_DIFF} -0123 -i --cached --staged --merge-base --cc -c --base --ours --theirs",
    "git:diff-tree": f"reads {_DIFF} -rtmcv --root --no-commit-id --cc --pretty? --format: --stdin --always "
    "--merge-base",
    "git:shortlog": f"reads {_WALK} -nsec -w? --summary --numbered --email --committer --group: --format:",
    "git:rev-list": f"reads {_WALK} --count --objects --objects-edge --disk-usage? --timestamp --pretty? --format: "
    "--no-commit-header --header --no-object-names --graph --bisect --missing:",
    "git:blame": "reads -efnswptlcb -L: -C? -M? --date: --since: --porcelain --line-porcelain --incremental --root "
    "--show-stats --show-name --show-number --show-email --score-debug --abbrev: --ignore-rev: --color-lines "
    "--color-by-age --first-parent",
    "git:cat-file": "reads -tsep --batch? --batch-check? --batch-all-objects --buffer --unordered --follow-symlinks",
    "git:count-objects": "reads -vH --verbose --human-readable",
    "git:describe": "reads --tags --all --contains --always --dirty? --broken? --long --abbrev? --match: --exclude: "
    "--candidates: --exact-match --first-parent --debug",
    "git:grep": "reads pattern no-pattern=-e,-f -0123456789niwvEFGPIahHolLcqrWpz -e: -A: -B: -C: -m: -f@ --cached "
    "--untracked --exclude-standard --recurse-submodules --line-number --column --ignore-case --word-regexp "
    "--invert-match --extended-regexp --fixed-strings --basic-regexp --perl-regexp --files-with-matches "
    "--files-without-match --name-only --null --only-matching --count --all-match --and --or --not --color? "
    "--no-color --break --heading --show-function --function-context --context: --after-context: --before-context: "
    "--max-depth: --max-count: --threads: --full-name --text --quiet --no-textconv",
    "git:ls-files": "reads -cdmoisuktvfz -x: --cached --deleted --modified --others --ignored --stage --unmerged "
    "--killed --exclude-standard --exclude: --error-unmatch --full-name --abbrev? --directory --no-empty-directory "
    "--eol --recurse-submodules --with-tree: --format: --deduplicate --debug",
    "git:ls-tree": "reads -drtlz --long --name-only --name-status --full-name --full-tree --abbrev? --object-only "
    "--format:",
    "git:merge-base": "reads -a --all --octopus --is-ancestor --fork-point --independent",
    "git:name-rev": "reads --tags --refs: --exclude: --all --name-only --no-undefined --undefined --always",
    "git:push": "texts -fdnqvu46 -o: --all --branches --mirror --delete --tags --follow-tags --force "
    "--force-with-lease? --force-if-includes --dry-run --porcelain --prune --quiet --verbose --set-upstream --thin "
    "--progress --verify --signed? --atomic --ipv4 --ipv6 --repo: --push-option: --receive-pack: --exec: "
    "--recurse-submodules: --no-tags --no-follow-tags --no-force --no-verify --no-thin --no-signed --no-atomic "
    "--no-progress --no-recurse-submodules --no-force-with-lease",
    "git:rev-parse": "reads -q --show-toplevel --abbrev-ref? --short? --verify --quiet --git-dir "
    "--is-inside-work-tree --is-inside-git-dir --is-bare-repository --is-shallow-repository --show-prefix "
    "--show-cdup --symbolic-full-name --symbolic --all --branches? --tags? --remotes? --revs-only --no-revs --flags "
    "--no-flags --absolute-git-dir --git-common-dir --show-superproject-working-tree --git-path: --not --default: "
    "--show-object-format? --path-format: --local-env-vars",
    "git:status": "reads -sbvz -u? --short --branch --porcelain? --long --verbose --untracked-files? --ignored? "
    "--column? --no-column --ahead-behind --no-ahead-behind --renames --no-renames --find-renames? --show-stash "
    "--ignore-submodules?",
}  # fmt: skip
"""Subcommands of git; `push` is here for its options alone."""
