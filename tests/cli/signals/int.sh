word=$(unique)
"$PX" exec -c "echo up; exec sleep $word" >"$TMP/out" & px=$!
until_filled "$TMP/out"
kill -INT $px
try wait $px
until_gone "$word"
