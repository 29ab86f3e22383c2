# Writes the C++ source TO, which holds the text of each file that EXAMPLES/files.cmake names. Run while
# building.
include(${EXAMPLES}/files.cmake)
set(source "// Made by cmake/embed_examples.cmake.\n#include \"cli/new_stage.hpp\"\n\n")
string(APPEND source "namespace carousel::supervisor {\n\nconst std::vector<project_file>& example_files() {\n")
string(APPEND source "    static const std::vector<project_file> all = {\n")
foreach(name IN LISTS CAROUSEL_EXAMPLE_FILES)
  file(READ ${EXAMPLES}/${name} text)
  string(APPEND source "        {\"${name}\", R\"carousel-file(${text})carousel-file\"},\n")
endforeach()
string(APPEND source "    };\n    return all;\n}\n\n}  // namespace carousel::supervisor\n")
file(WRITE ${TO} "${source}")
