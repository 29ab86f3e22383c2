#include "stages/display/display.hpp"

int main(int argc, char** argv) { return carousel::stage_main<carousel::stages::display>(argc, argv); }
