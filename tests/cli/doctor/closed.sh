# Where user namespaces are closed the tier is what a real box gives, landlock or none; and the words name the setting.
as_root
need jq
unshare --user --map-root-user true 2>/dev/null || skip 'no user namespace can be made here'
closed() { unshare --user --map-user=1300 --map-group=1300 --keep-caps bash -c 'echo 0 >/proc/sys/user/max_user_namespaces 2>/dev/null || exit 77; exec setpriv --inh-caps=-all --ambient-caps=-all --bounding-set=-all "$@"' sh "$@"; }
chmod 777 "$TMP"
closed true || skip 'user namespaces cannot be closed here'
try closed "$PX" doctor -q
closed "$PX" --json doctor >all || true
jq -c '.rows[] | select(.group == "namespaces" and .name == "user") | [.state, .why]' all
jq -c '.rows[] | select(.name == "user namespaces") | [.state, .found]' all
# The tier agrees with the box that asked for no more than landlock.
jq -c '.full == false and .tier == (.tiers[1] | if .starts then .tier else "none" end)' all
