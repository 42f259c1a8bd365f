# Has to be spelled out, and is accepted everywhere.
"$PX" exec --memory unlimited --cpus unlimited --pids unlimited --timeout unlimited --output-limit unlimited --file-size unlimited --nofile unlimited --disk unlimited --cpu-time unlimited -- echo free
