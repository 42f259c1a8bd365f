# The same questions to a box of px and to bubblewrap with the exported policy: the same answers.
need bwrap
as_user
mkdir -p ro rw && echo r >ro/f && echo hidden >hidden
cat >ask.sh <<'ASK'
id -u; id -un; pwd; hostname; ls -A /; ls -A /etc; ls /workspace; cat ro/f; cat /proc/sys/kernel/hostname
echo x >rw/new && echo wrote
for place in ro/x /etc/x /usr/x /x /proc/sys/kernel/hostname /sys/x; do (echo x >$place) 2>/dev/null && echo "wrote $place"; done
(echo x >/tmp/x) && echo scratch
cat "$HIDDEN" 2>/dev/null && echo "read it"
env | sort | grep -v ^HIDDEN
unshare -U true 2>/dev/null && echo namespace
grep -E '^(Seccomp|NoNewPrivs|CapEff|CapBnd):' /proc/self/status
cat /proc/keys /proc/kallsyms 2>/dev/null | head -n 1
grep -v lo: /proc/net/dev | tail -n +3
python3 -c 'import socket; socket.socket(40, 1)' 2>&1 | tail -n 1
ls /proc | grep -c '^[0-9]' >/dev/null
ASK
policy=(--preset worker --timeout 100s -v "$PWD/ro:/workspace/ro:ro" -v "$PWD/rw:/workspace/rw" -w /workspace -e "HIDDEN=$PWD/hidden")
"$PX" exec "${policy[@]}" -- sh -c "$(cat ask.sh)" >ours
rm rw/new
"$PX" policy export --to bwrap "${policy[@]}" -- sh -c "$(cat ask.sh)" >run.sh
bash run.sh >theirs
diff ours theirs
grep -E '^(wrote|scratch|1000|namespace|read it)' ours
sed -n 2,4p run.sh
