# A reader that takes its time loses nothing.
"$PX" exec -- seq 1 100000 | (sleep 0.5; md5sum) | cut -d' ' -f1
seq 1 100000 | md5sum | cut -d' ' -f1 >"$TMP/sum"
cat "$TMP/sum"
"$PX" exec -- seq 1 100000 | (sleep 0.5; md5sum) | cut -d' ' -f1 | cmp - "$TMP/sum" && echo same
