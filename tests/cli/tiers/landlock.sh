# Where user namespaces are closed: refused, or, if asked for by name, the weaker tier, which says what is missing.
as_root
need jq
unshare --user --map-root-user true 2>/dev/null || skip 'no user namespace can be made here'
# In a user namespace that allows no more of them, px is an ordinary caller on such a host.
closed() { unshare --user --map-user=1300 --map-group=1300 --keep-caps bash -c 'echo 0 >/proc/sys/user/max_user_namespaces 2>/dev/null || exit 77; exec setpriv --inh-caps=-all --ambient-caps=-all --bounding-set=-all "$@"' sh "$@"; }
chmod 777 "$TMP"
closed true || skip 'user namespaces cannot be closed here'
says closed "$PX" exec -- echo RAN
closed "$PX" exec --require landlock -- echo weaker
closed "$PX" --json exec --require landlock -c 'cat /etc/shadow; ls /root; touch /usr/x; touch ~/mine && echo home' 2>/dev/null | jq -c '[.stdout, .isolation.tier, (.isolation.missing | index("namespaces") != null)]'
ls -d "$TMP"/px-* 2>/dev/null || echo 'nothing left'
# A directory of the caller's own in TMPDIR is not px's, whatever it is called.
closed mkdir "$TMP/px-backup" "$TMP/px-homes-1300" "$TMP/px-homes-1300/home-0123456789abcdef"
closed touch "$TMP/px-backup/thesis"
closed "$PX" exec --require landlock -- echo again
(cd "$TMP" && find px-* | sort)
# A box that stays has no such tier, and does not send anybody there.
closed env PX_HOME="$TMP/homes" "$PX" box start --name weak --require landlock 2>err && echo STARTED
sed -n '1p;/^Why/,$p' err
