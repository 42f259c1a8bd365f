# Words that are none of theirs.
cd "$TMP"
says "$PX" sync now
says "$PX" sync --frozzen
says "$PX" status --long
says "$PX" init a b
says "$PX" init --name
says "$PX" init --name '-x-'
says "$PX" init nowhere
ls "$TMP" | grep -v says.err || true
