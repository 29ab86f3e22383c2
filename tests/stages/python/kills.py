#!/usr/bin/env python3
"""Kills a NumPy stage under load, with a standby: kills.py BUILD [words of tests/crash/campaign.py]"""
import os
import sys

import interpreter

HERE = os.path.dirname(os.path.abspath(__file__))

interpreter.use(sys.argv[1])
os.execv(sys.executable, [sys.executable, "-B", os.path.join(HERE, "../../crash/campaign.py"), "--build", os.path.abspath(sys.argv[1]),
                          "--pipeline", os.path.join(HERE, "kills.toml"), "--device", "cpu", "--stages", "shade", "--pause-ms", "80",
                          *sys.argv[2:]])
