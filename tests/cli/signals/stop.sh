# A stopped px goes on where it was.
"$PX" exec -c 'echo up; sleep 0.3; echo end' >"$TMP/out" & px=$!
until_filled "$TMP/out"
kill -STOP $px
sleep 0.5
kill -CONT $px
wait $px
cat "$TMP/out"
