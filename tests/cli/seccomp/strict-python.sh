# Processes, threads, pipes, local sockets, files: what Python does without a network.
need python3
"$PX" exec --seccomp strict --timeout 50s -- python3 -c '
import asyncio, concurrent.futures, multiprocessing, os, shutil, socket, sqlite3, subprocess, tempfile, threading
def square(x):
    return x * x
with multiprocessing.get_context("fork").Pool(2) as pool:
    print(pool.map(square, range(4)))
with concurrent.futures.ThreadPoolExecutor(2) as pool:
    print(list(pool.map(square, range(4))))
async def main():
    p = await asyncio.create_subprocess_exec("echo", "child", stdout=asyncio.subprocess.PIPE)
    return (await p.communicate())[0]
print(asyncio.run(main()))
a, b = socket.socketpair()
a.send(b"pair")
print(b.recv(4))
with tempfile.TemporaryDirectory() as d:
    db = sqlite3.connect(d + "/db")
    db.execute("create table t(a)")
    db.commit()
    db.close()
    shutil.copy(d + "/db", d + "/copy")
    print(sorted(os.listdir(d)))
print(subprocess.run(["sh", "-c", "exit 3"]).returncode)
'
