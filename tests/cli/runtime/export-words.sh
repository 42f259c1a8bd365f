# The same policy in the words of others, and what is said of a policy.
mkdir -p 'a b'
"$PX" policy export --to seatbelt -v "$PWD/a b:/w" | sed "s,$PWD,DIR,"
"$PX" policy export --to docker --preset untrusted -v "$PWD/a b:/w:ro" -- echo "it's" | sed "s,$PWD,DIR,"
says "$PX" policy export --to chroot
says "$PX" policy export --to bwrap --overlay
for to in bwrap docker oci seatbelt; do
    says "$PX" policy export --to $to --net box:other
done
"$PX" policy check -v "$PWD/a b:/w"
try "$PX" policy check -v /:/host:ro -v "$PWD/a b:/w" -v "$PWD/a b:/w:ro" --net host
