#include "stages/geometry/geometry.hpp"

int main(int argc, char** argv) { return carousel::stages::stage_main<carousel::stages::geometry>(argc, argv); }
