// The code of tinyobjloader, a single-header library. Compiled separately, because in a unity build another
// file may include the header first.
#define TINYOBJLOADER_IMPLEMENTATION
#include <tiny_obj_loader.h>
