# A command that will not go is made to, after a moment.
word=$(unique)
"$PX" exec -c "trap '' TERM; echo up; while :; do sleep $word; done" >"$TMP/out" & px=$!
until_filled "$TMP/out"
kill -TERM $px
try wait $px
until_gone "$word"
