# A command that does not read its input is not held up by it.
head -c 10m /dev/zero | timeout 20 "$PX" exec -i -- echo fine
yes | timeout 20 "$PX" exec -i -- head -1
