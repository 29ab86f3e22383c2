// The code of tinyobjloader, a library of one header. Compiled alone: in a unity build another file may
// include the header first.
#define TINYOBJLOADER_IMPLEMENTATION
#include <tiny_obj_loader.h>
