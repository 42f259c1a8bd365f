# Directories that cannot take the changes: said before anything starts, and left as they are.
need_overlay_dir
refused() { # refused OPTIONS...: the second line of why
    "$PX" exec --rootfs "$TMP/rootfs" "$@" -c 'echo RAN' 2>"$TMP/err" && echo 'it ran'
    head -n 1 "$TMP/err" | cut -c 1-5
    sed -n '/^Why:/{n;p}' "$TMP/err"
}
mkdir -m 700 "$TMP/mine" "$TMP/open"
echo data >"$TMP/mine/upper"
chmod 777 "$TMP/open"
ln -s mine "$TMP/link"
listing "$TMP" | grep -v 'err\|rootfs\|^\. ' >"$TMP.list"
refused --overlay="$TMP/mine"
refused --overlay="$TMP/open"
refused --overlay="$TMP/link"
refused --overlay="$TMP/mine/upper"
refused --overlay="$TMP/rootfs/inside"
refused --overlay="$TMP"
refused --overlay="$TMP/no/such"
says "$PX" exec --overlay -c true
listing "$TMP" | grep -v 'err\|rootfs\|^\. ' | diff "$TMP.list" - && rm "$TMP.list"
cat "$TMP/mine/upper"
[ ! -e "$TMP/rootfs/inside" ]
