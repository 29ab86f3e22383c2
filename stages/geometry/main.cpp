#include "stages/geometry/geometry.hpp"

int main(int argc, char** argv) { return carousel::stage_main<carousel::stages::geometry>(argc, argv); }
