# Half a processor: the group of the box has the quota while the box lives.
as_root
word=$(unique)
"$PX" exec --cpus 0.5 -- sleep "$word" & px=$!
until pgrep -f "^sleep $word" >/dev/null; do sleep 0.02; done
group=$(sed -n 's/^[0-9]*:\(cpu\|cpu,cpuacct\|\):\(.*px-.*\)$/\2/p' "/proc/$(pgrep -f "^sleep $word")/cgroup" | head -1)
found=no
while read -r file; do
    case $file in
    */cpu.max) awk '$1 * 2 == $2 { found = 1 } END { exit !found }' "$file" && found=yes ;;
    */cpu.cfs_quota_us) [ $(($(cat "$file") * 2)) -eq "$(cat "${file%quota_us}period_us")" ] && found=yes ;;
    esac
done < <(find /sys/fs/cgroup -path "*${group:-/px-nowhere}/cpu.*" \( -name cpu.max -o -name cpu.cfs_quota_us \))
kill $px
wait $px 2>/dev/null || true
echo $found
