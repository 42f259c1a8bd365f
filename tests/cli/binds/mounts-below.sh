# What is mounted below a bind belongs to its owner outside, as the bind does.
as_root
mkdir -p "$TMP/d/sub"
unshare -m sh -e -c 'mount -t tmpfs none "$1/sub"; echo secret >"$1/sub/mine"; chmod 600 "$1/sub/mine"
"$2" exec -v "$1:/x" -c "cat /x/sub/mine; touch /x/sub/new"; stat -c "%U %n" "$1/sub/new" | sed "s,$1,D,"' sh "$TMP/d" "$PX"
