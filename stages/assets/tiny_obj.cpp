// The code of tinyobjloader, a single-header library. This file is compiled separately, because in a unity
// build another file might include the header before it.
#define TINYOBJLOADER_IMPLEMENTATION
#include <tiny_obj_loader.h>
