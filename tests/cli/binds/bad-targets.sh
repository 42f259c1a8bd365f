# Places that are px's own, or lie in a tree that is not: nothing is made there.
mkdir "$TMP/d"
cd "$TMP"
for place in /proc /proc/x /dev/x /dev/null /sys /sys/x; do
    says "$PX" exec -v "$TMP/d:$place" -- echo RAN | grep -c -e 'the box makes that directory itself' -e 'exit 125'
done
says "$PX" exec -v "$TMP/d:/usr/px-test-place" -- echo RAN
says "$PX" exec -v "$TMP/d:/usr/share/px-test/deep" -- echo RAN
ls /usr/px-test-place /usr/share/px-test 2>/dev/null || echo 'nothing was made'
