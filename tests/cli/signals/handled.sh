# A command that handles it decides itself.
for name in TERM INT HUP USR1 USR2 QUIT; do
    "$PX" exec -c "trap 'echo got $name; exit 9' $name; echo up; while :; do sleep 0.05; done" >"$TMP/out" & px=$!
    until_filled "$TMP/out"
    kill -$name $px
    status=0
    wait $px || status=$?
    echo "$(tail -1 "$TMP/out") $status"
    : >"$TMP/out"
done
