"""No function that was compiled for one instruction set can be linked into other code: the objects of the inner loops define no
weak functions. test_symbols.py NM ARCHIVE"""
import subprocess
import sys


def main():
    listed = subprocess.run([sys.argv[1], "-C", sys.argv[2]], capture_output=True, text=True, timeout=60, check=True).stdout
    objects, weak, ours = 0, [], False
    for line in listed.splitlines():
        if line.endswith(":"):
            ours = line.startswith(("simd_", "looks_"))
            objects += ours
        elif ours and " W " in line:
            weak.append(line.strip())
    if objects < 2:
        sys.exit(f"{sys.argv[2]} has {objects} objects of inner loops; expected simd_NAME and looks_NAME")
    if weak:
        sys.exit("the linker may take these functions, compiled for one instruction set, for all callers; force them inline:\n" + "\n".join(weak))


if __name__ == "__main__":
    main()
