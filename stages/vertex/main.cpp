#include "stages/vertex/vertex.hpp"

int main(int argc, char** argv) { return carousel::stages::stage_main<carousel::stages::vertex>(argc, argv); }
