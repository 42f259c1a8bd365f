# Changes that were kept and are bent towards the host: links where px mounts, or in place of its own directories.
need_overlay_dir
mkdir "$TMP/outside"
echo outside >"$TMP/outside/file"
chmod -R a+rwX "$TMP/outside"
run() { # what it ran says so; a refusal is one word
    says "$PX" exec --rootfs "$TMP/rootfs" --overlay="$TMP/kept" --persist "$@" | sed 's/^PX0.*/refused/;/^Why:/d;/^Fix:/d;/^exit 0/d'
}
for place in proc tmp home dev dev/pts; do
    run -c true
    mkdir -p "$TMP/kept/upper/$(dirname $place)"
    ln -s "$TMP/outside" "$TMP/kept/upper/$place"
    run -c 'echo RAN'
    rm -rf "$TMP/kept"
done
run -c true
mv "$TMP/kept/upper" "$TMP/kept/was"
ln -s "$TMP/outside" "$TMP/kept/upper"
run -c 'echo RAN >/x'
rm -rf "$TMP/kept"
run -c true
rm -r "$TMP/kept/work"
ln -s "$TMP/outside" "$TMP/kept/work"
run -c 'echo RAN >/x'
find "$TMP/outside" -type f -printf '%P %s\n'
