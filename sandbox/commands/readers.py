"""The programs that only read, each with the options that keep it a reader."""

from collections.abc import Mapping
from functools import cache

from sandbox.commands import checks
from sandbox.commands.options import Check, Operands, Reader, options

_CONTENT: dict[str, str] = {
    "cat": (
        "nbsvETetAu --number --number-nonblank --squeeze-blank --show-ends --show-tabs --show-all"
        " --show-nonprinting"
    ),
    "head": "qvz0123456789n:c: --lines= --bytes= --quiet --silent --verbose --zero-terminated",
    "tail": "qvz0123456789n:c: --lines= --bytes= --quiet --silent --verbose --zero-terminated",
    "wc": "lwcmL --lines --words --bytes --chars --max-line-length",
    "cut": (
        "nszd:f:c:b: --delimiter= --fields= --characters= --bytes= --only-delimited --complement"
        " --output-delimiter= --zero-terminated"
    ),
    "nl": "b:d:f:h:i:l:n:ps:v:w: --body-numbering= --number-width= --starting-line-number=",
    "rev": "",
    "tac": "bs: --before --separator=",
    "fold": "bsw: --bytes --spaces --width=",
    "expand": "it: --initial --tabs=",
    "unexpand": "at: --all --tabs=",
    "fmt": "csuw:p: --width=",
    "paste": "sd: --serial --delimiters=",
    "comm": "123z --check-order --nocheck-order --total --output-delimiter=",
    "join": "1:2:t:ia:v:e:j:z --ignore-case --header --check-order --nocheck-order",
    "column": "txs:c: --table --separator=",
    "od": (
        "A:t:N:j:vabcdfiloxw? --address-radix= --format= --read-bytes= --skip-bytes= --output-duplicates"
        " --width?"
    ),
    "hexdump": "Cvbcdox n:s: --canonical --length= --skip= --no-squeezing",
    "base64": "dw:i --decode --wrap= --ignore-garbage",
    "cksum": "",
    "md5sum": "btz --binary --text --tag --zero",
    "sha1sum": "btz --binary --text --tag --zero",
    "sha256sum": "btz --binary --text --tag --zero",
    "sha512sum": "btz --binary --text --tag --zero",
    "b2sum": "btzl: --binary --text --tag --zero --length=",
    "cmp": "blsi:n: --print-bytes --verbose --quiet --silent --bytes= --ignore-initial=",
    "ls": (
        "aAbBcCdfFgGhHiIklLmnNopqQrRsStTuUvwxXZ1 I@T@w@ --all --almost-all --author --color? --classify?"
        " --directory --escape --file-type --format= --full-time --group-directories-first --human-readable"
        " --hide= --ignore= --ignore-backups --indicator-style= --inode --kibibytes --literal --no-group"
        " --numeric-uid-gid --quote-name --quoting-style= --recursive --reverse --si --size --sort= --time="
        " --time-style= --width="
    ),
    "stat": "c:fLt --format= --printf= --file-system --dereference --terse",
    "file": (
        "bikhNr0L --brief --mime --mime-type --mime-encoding --keep-going --no-dereference --dereference"
        " --print0"
    ),
    "du": (
        "shacmkbxS0d: --summarize --human-readable --all --total --max-depth= --apparent-size --bytes"
        " --null --one-file-system --separate-dirs --exclude= --threshold= --time?"
    ),
    "df": "hTikPa --human-readable --print-type --inodes --portability --all --total",
    "realpath": (
        "emsqzLP --canonicalize-existing --canonicalize-missing --no-symlinks --quiet --zero --relative-to@"
        " --relative-base@"
    ),
    "readlink": "femnqsvz --canonicalize --canonicalize-existing --canonicalize-missing --no-newline",
}
_TEXT: dict[str, str] = {
    "basename": "as:z --multiple --suffix= --zero",
    "dirname": "z --zero",
    "tr": "csdtC --delete --squeeze-repeats --complement --truncate-set1",
    "seq": "s:wf: --separator= --equal-width --format=",
    "pwd": "LP",
    "which": "a",
    "type": "atpP",
    "whoami": "",
    "id": "ugGnr --user --group --groups --name --real",
    "groups": "",
    "uname": "asnrvmpio --all --kernel-name --kernel-release --machine --operating-system",
    "arch": "",
    "nproc": "--all",
    "uptime": "ps --pretty --since",
}
_GREP = (
    "nrilLcwvoEFPGHhsqxaIbzZTUy0123456789A:B:C:m:e:D:f@ --recursive --line-number --ignore-case"
    " --no-ignore-case --files-with-matches --files-without-match --count --word-regexp --line-regexp"
    " --invert-match --only-matching --extended-regexp --fixed-strings --perl-regexp --basic-regexp"
    " --with-filename --no-filename --no-messages --quiet --silent --text --byte-offset --null"
    " --null-data --initial-tab --after-context= --before-context= --context= --max-count= --regexp="
    " --file@ --include= --exclude= --exclude-dir= --exclude-from@ --color? --colour? --binary-files="
    " --devices= --label="
)
_RG = (
    "nilcwSFvoNHIsUPxhpqaA:B:C:m:e:g:t:T:r:j:M:d:E:f@ --line-number --no-line-number --ignore-case"
    " --smart-case --case-sensitive --files-with-matches --files-without-match --count --count-matches"
    " --word-regexp --line-regexp --invert-match --only-matching --fixed-strings --with-filename"
    " --no-filename --no-messages --multiline --multiline-dotall --pcre2 --after-context="
    " --before-context= --context= --max-count= --regexp= --glob= --iglob= --type= --type-not="
    " --type-list --replace= --file@ --files --heading --no-heading --color= --colors= --column --trim"
    " --vimgrep --json --stats --sort= --sortr= --max-depth= --max-columns= --threads= --text --null"
    " --quiet --pretty --byte-offset --passthru --max-filesize= --no-config --version --help --encoding="
    " --no-ignore-messages"
)


@cache
def readers() -> Mapping[str, Reader]:
    """Every reader whose arguments are options and operands."""
    table = {name: Reader(options(text), fragile=name == "file") for name, text in _CONTENT.items()}
    table |= {name: Reader(options(text), "text") for name, text in _TEXT.items()}
    special: dict[str, tuple[str, Operands, Check]] = {
        "grep": (_GREP, "pattern", checks.grep_check),
        "egrep": (_GREP, "pattern", checks.grep_check),
        "fgrep": (_GREP, "pattern", checks.grep_check),
        "rg": (_RG, "pattern", checks.rg_check),
        "sed": (
            "nErsuze: --quiet --silent --regexp-extended --separate --unbuffered --null-data --posix"
            " --expression=",
            "pattern",
            checks.sed_check,
        ),
        "diff": (
            "uqyrwbBiNastpcdEZU:C:W: --unified? --context? --brief --report-identical-files"
            " --side-by-side --recursive --ignore-case --ignore-all-space --ignore-space-change"
            " --ignore-blank-lines --new-file --text --minimal --color? --width= --suppress-common-lines"
            " --strip-trailing-cr --show-c-function --label= --no-dereference",
            "paths",
            checks.diff_check,
        ),
        "printf": ("", "text", checks.printf_check),
        "date": (
            "uRI?d: --utc --universal --rfc-email --iso-8601? --rfc-3339= --date=",
            "text",
            checks.date_check,
        ),
        "sleep": ("", "text", checks.sleep_check),
        "tree": (
            "adfishpugDFCnrtvAS0123456789L:I:P: --noreport --dirsfirst --filesfirst --gitignore --du"
            " --prune --inodes",
            "paths",
            checks.tree_check,
        ),
        "jq": (
            "rcensSMCaj --raw-output --compact-output --exit-status --null-input --slurp --sort-keys"
            " --monochrome-output --color-output --ascii-output --join-output --raw-input R --tab",
            "pattern",
            checks.jq_check,
        ),
        "strings": ("an:t:e: --all --bytes= --radix= --encoding=", "paths", checks.strings_check),
        "hostname": ("sfiI --short --fqdn", "text", checks.hostname_check),
    }
    fragile = {"rg", "sed", "tree", "date", "hostname", "strings", "file", "printf"}
    for name, (text, operands, check) in special.items():
        table[name] = Reader(options(text), operands, fragile=name in fragile, check=check)
    table["sort"] = Reader(
        options(
            "bdfghiMnRruVcCmszk:t: --ignore-leading-blanks --dictionary-order --ignore-case"
            " --general-numeric-sort --human-numeric-sort --month-sort --numeric-sort --random-sort"
            " --reverse --unique --version-sort --check? --merge --stable --zero-terminated --key="
            " --field-separator= --sort= --debug"
        ),
        fragile=True,
    )
    table["uniq"] = Reader(
        options(
            "cduiDzf:s:w: --count --repeated --unique --ignore-case --zero-terminated --all-repeated?"
            " --skip-fields= --skip-chars= --check-chars="
        ),
        most=1,
        fragile=True,
    )
    table["xxd"] = Reader(options("pubEil:s:c:g:"), most=1, fragile=True, check=checks.xxd_check)
    return table
