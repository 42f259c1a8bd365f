# kill -9 of px: nothing of the box is left.
word=$(unique)
"$PX" exec -c "setsid -f sleep $word; trap '' TERM HUP; echo up; sleep $word" >"$TMP/out" & px=$!
until_filled "$TMP/out"
kill -9 $px
wait $px 2>/dev/null || echo "exit $?"
until_gone "$word"
