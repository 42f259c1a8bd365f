# Orphans go to pid 1, which takes them away: no zombie stays.
"$PX" exec -c 'for i in 1 2 3 4 5 6 7 8; do (sh -c "exit 1" &) ; done
for try in 1 2 3 4 5 6 7 8 9 10; do
    left=$(cat /proc/[0-9]*/stat 2>/dev/null | grep -c ") Z ")
    [ "$left" -ne 0 ] || break
    sleep 0.1
done
echo "$left zombies"'
