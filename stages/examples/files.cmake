# The example projects' files. `carousel new stage` writes projects from exactly these files.
set(CAROUSEL_EXAMPLE_FILES
  negative/CMakeLists.txt negative/README.md negative/main.cpp negative/negative.hpp negative/negative.toml
  negative/test_negative.cpp
  average/CMakeLists.txt average/README.md average/average.hpp average/average.toml average/main.cpp
  average/test_average.cpp
  grayscale/CMakeLists.txt grayscale/README.md grayscale/grayscale.hpp grayscale/grayscale.toml grayscale/kernel.cu
  grayscale/kernel.hpp grayscale/main.cpp grayscale/test_grayscale.cpp
  scan/CMakeLists.txt scan/README.md scan/scan.hpp scan/scan.toml scan/scan_sink.hpp scan/scan_source.hpp
  scan/sink_main.cpp scan/source_main.cpp scan/test_scan.cpp
  ipc/CMakeLists.txt ipc/README.md ipc/blocks.c ipc/pool.cpp ipc/queue.cpp ipc/ranks.cpp ipc/semaphore.cpp
  ipc/work_queue.cpp
  ipc_cuda/CMakeLists.txt ipc_cuda/README.md ipc_cuda/queue.cu
  port/CMakeLists.txt port/README.md port/newest.cpp port/feed.cpp port/count.cpp port/feed.py port/count.py port/ports.toml
  tally/README.md tally/tally.py tally/tally.toml tally/test_tally.py
  tracker/README.md tracker/balls.py tracker/test_tracker.py tracker/tracker.py tracker/tracker.toml
  tint/README.md tint/test_tint.py tint/tint.py tint/tint.toml
  notebook/README.md notebook/inspect_run.py
  model_server/README.md model_server/model_server.py)
