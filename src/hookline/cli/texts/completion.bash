# bash completion for hookline
_hookline() {
    local word="${COMP_WORDS[COMP_CWORD]}" command="${COMP_WORDS[1]}"
    if [ "$COMP_CWORD" -eq 1 ]; then
        COMPREPLY=($(compgen -W "@COMMANDS@" -- "$word")); return
    fi
    case "$command" in
@CASES@
        *) COMPREPLY=() ;;
    esac
    [ ${#COMPREPLY[@]} -gt 0 ] || COMPREPLY=($(compgen -f -- "$word"))
}
complete -o filenames -F _hookline hookline
