# Without -i there is nothing to read, and nobody waits for it.
echo text | "$PX" exec -- cat
sleep 60 | timeout 20 "$PX" exec -- cat & wait $!
echo done
