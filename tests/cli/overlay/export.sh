# Kept changes and what they are laid over, as one archive that is a root again.
need_overlay_dir
need tar
echo old >"$TMP/rootfs/etc/own"
for file in "$(command -v tar)" $(ldd "$(command -v tar)" | grep -o '/[^ ]*'); do
    mkdir -p "$TMP/rootfs$(dirname "$file")"
    cp "$file" "$TMP/rootfs$file"
done
run() { "$PX" exec --rootfs "$TMP/rootfs" --overlay="$TMP/kept" --persist "$@"; }
run -c 'echo new >/etc/x; /bin/busybox rm /etc/own; echo here >/tmp/x; echo here >x'
run -- "$(command -v tar)" --create --one-file-system --directory=/ . >root.tar
tar -tf root.tar | grep -cE '^\./(proc|dev|tmp|home/sandbox)/.' || true
"$PX" exec --rootfs "$PWD/root.tar" -c 'cat /etc/x; ls /etc/own' 2>/dev/null || echo "exit $?"
