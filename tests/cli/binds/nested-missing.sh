# The inner place does not exist: an error, in both orders, wherever the outer one lies; never a directory in a user's tree.
mkdir "$TMP/outer" "$TMP/inner"
chmod 777 "$TMP/outer"
says "$PX" exec -v "$TMP/outer:/o" -v "$TMP/inner:/o/x" -- echo RAN
says "$PX" exec -v "$TMP/inner:/o/x" -v "$TMP/outer:/o" -- echo RAN
says "$PX" exec -v "$TMP/outer:/tmp/o" -v "$TMP/inner:/tmp/o/x" -- echo RAN
says "$PX" exec -v "$TMP/inner:/tmp/o/x" -v "$TMP/outer:/tmp/o" -- echo RAN
says "$PX" exec -v "$TMP/inner:/home/sandbox/o/x/y" -v "$TMP/outer:/home/sandbox/o" -- echo RAN
find "$TMP/outer" "$TMP/inner" -mindepth 1
