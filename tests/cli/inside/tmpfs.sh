"$PX" exec --tmpfs /scratch:size=1m --tmpfs /deep/er -c 'touch /scratch/f /deep/er/f && stat -c "%a %U" /scratch; df -k --output=size /scratch | tail -1 | tr -d " "'
"$PX" exec --tmpfs /tmp/inner:size=1m -c 'touch /tmp/f /tmp/inner/f && echo nested'
"$PX" exec --tmpfs /tmp:size=2m -c 'df -k --output=size /tmp | tail -1 | tr -d " "'
