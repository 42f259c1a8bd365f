# The same policy as a file; what such a file cannot say is named in it.
"$PX" policy export --to oci --preset untrusted --tmpfs /scratch:size=1m -e A=b -w /tmp -- python3 main.py >"$TMP/config.json"
jq -c '[.ociVersion, .process.args, .process.cwd, .process.noNewPrivileges, .process.capabilities.bounding, .root]' "$TMP/config.json"
jq -c '[.linux.resources.memory.limit, .linux.resources.cpu.quota, .linux.seccomp.defaultAction]' "$TMP/config.json"
jq -c '[.linux.namespaces[].type]' "$TMP/config.json"
jq -c '.mounts[] | select(.destination == "/scratch") | [.type, (.options | contains(["size=1048576", "nosuid", "nodev"]))]' "$TMP/config.json"
jq -c '[.linux.uidMappings[].hostID | . > 0] | all' "$TMP/config.json"
jq -r '.annotations["px.not-in-this-file"]' "$TMP/config.json"
says "$PX" policy export --to chroot
says "$PX" policy export
