@echo off
if exist "%~dp0python.exe" ("%~dp0python.exe" -m hookline %*) else ("%~dp0..\python.exe" -m hookline %*)
