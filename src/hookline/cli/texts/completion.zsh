#compdef hookline
local -a commands
commands=(
@COMMANDS@
)
if (( CURRENT == 2 )); then
    _describe 'command' commands
    return
fi
case "$words[2]" in
@CASES@
    *) _files ;;
esac
