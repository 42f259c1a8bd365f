# --help behind a verb is the help of its command; behind a program it is the program's.
for words in 'policy export' 'box exec' 'box copy' 'task run' 'sandbox base' 'worker shell' 'pack image'; do
    # shellcheck disable=SC2086  # the words are meant to be split
    "$PX" $words --help 2>&1 | sed -n '1s/ - .*//p'
done
"$PX" exec -- printf "%s\n" --help
cd "$TMP" && "$PX" run python --help 2>&1 | sed -n '1s/  .*//p'
