# An exported config by hand, without px.
need runc
mkdir -p "$TMP/bundle/rootfs"
cd "$TMP/bundle"
"$PX" policy export --to oci -- sh -c 'echo by hand; (echo x >/etc/x) 2>/dev/null || echo read-only; unshare -U true 2>/dev/null || echo filtered; exit 4' >config.json
if [ "$AS" = root ]; then
    chown "$(jq '.linux.uidMappings[0].hostID' config.json)" rootfs
fi
try runc --root "$TMP/state" run box
